"""The large vocabulary: hundreds of names, and several wordings of each message, drawn per task."""

from turngym.envs.rooms.names import Pools
from turngym.envs.rooms.text import Text

_ROOMS = """
    kitchen cellar attic garden hall study bedroom porch shed pantry library parlour bathroom workshop garage
    stable chapel gallery laboratory greenhouse balcony terrace courtyard barn vault office nursery lounge
    corridor foyer ballroom armoury dungeon crypt tower bakery brewery dairy forge studio theatre museum
    classroom canteen dormitory infirmary laundry lobby mill observatory scullery smithy vestibule veranda
"""
_COLOURS = """
    red blue green white black gold yellow purple orange pink brown grey silver bronze copper ivory scarlet
    crimson turquoise violet amber jade ruby emerald dusty shiny rusty ancient modern tiny huge heavy polished
    cracked painted striped spotted carved plain fancy curious odd splendid humble royal rustic foreign
    northerly southerly wooden metal plastic marble velvet leather woollen hollow crooked square round oval
    frosty smoky sturdy fragile
"""
_THINGS = """
    book cup lamp coin hammer brush comb mirror candle ladle spoon fork plate kettle teapot umbrella hat glove
    scarf boot ring bracelet necklace crown sword shield bow arrow rope lantern compass telescope whistle drum
    flute violin trumpet ball kite puzzle doll marionette pencil stamp envelope parcel magnet battery radio
    camera clock pillow blanket towel sponge bucket shovel saw chisel nail
"""
_FOODS = """
    apple bread pear plum peach cherry melon lemon banana mango carrot potato onion turnip radish cabbage
    lettuce cucumber pumpkin bean pea sausage ham cheese egg pancake waffle pie cake biscuit muffin pretzel
    sandwich soup pudding toffee chocolate almond walnut hazelnut
"""
_CONTAINERS = """
    chest box crate trunk cabinet safe wardrobe locker suitcase basket barrel coffer cupboard drawer hamper
    casket fridge oven bin sack
"""
_SUPPORTERS = """
    table shelf bench desk counter stool chair couch mantel pedestal rack stand workbench dresser tray
    altar platform windowsill
"""

LARGE = Text(
    pools=Pools(
        rooms=tuple(_ROOMS.split()),
        colours=tuple(_COLOURS.split()),
        things=tuple(_THINGS.split()),
        foods=tuple(_FOODS.split()),
        containers=tuple(_CONTAINERS.split()),
        supporters=tuple(_SUPPORTERS.split()),
    ),
    thing="the {x}",
    comma=", ",
    last_comma=" and ",
    frames={
        "brief": (
            "Your goal: {goal}.",
            "The task is simple: {goal}.",
            "Someone asks you for a favour: {goal}.",
            "All that you must do: {goal}.",
        ),
        "none": (
            "Find out what to do.",
            "Nobody has told you what to do; find it out.",
            "Something has to be done. Find out what.",
        ),
    },
    orders=(
        ("first", "then", "finally"),
        ("to begin with", "next", "at last"),
        ("", "after that", "after that"),
        ("start like this:", "now", "in the end"),
        ("", "", ""),
    ),
    step_comma=", ",
    full_stop=".",
    steps={
        "go": ("go {way}", "walk to the {way}", "head {way}", "leave by the {way} exit"),
        "take": ("take the {x}", "pick up the {x}", "get hold of the {x}"),
        "take_from": (
            "take the {x} from the {y}",
            "pick up the {x} out of the {y}",
            "fetch the {x} from the {y}",
        ),
        "drop": ("drop the {x}", "lay down the {x}", "leave the {x} on the ground"),
        "put": ("put the {x} on the {y}", "place the {x} on top of the {y}", "let the {x} rest on the {y}"),
        "insert": ("insert the {x} into the {y}", "stow the {x} in the {y}", "hide the {x} inside the {y}"),
        "eat": ("eat the {x}", "taste the {x} and finish it", "have the {x} as a meal"),
        "open": ("open the {x}", "make sure that the {x} is open", "see that the {x} stands open"),
        "close": ("close the {x}", "make sure that the {x} is shut", "shut the {x}"),
        "unlock_with": (
            "unlock the {x} with the {y}",
            "use the {y} to undo the lock of the {x}",
            "turn the {y} in the lock of the {x} till it is free",
        ),
        "lock_with": (
            "lock the {x} with the {y}",
            "use the {y} to bolt the {x}",
            "secure the {x} by means of the {y}",
        ),
        "unlock": ("unlock the {x}", "undo the lock of the {x}", "make sure that the {x} is not locked"),
        "lock": ("lock the {x}", "make sure that the {x} is locked", "secure the {x} under lock"),
        "drop_in": (
            "drop the {x} in the {y}",
            "leave the {x} on the floor of the {y}",
            "bring the {x} to the {y}",
        ),
        "go_to": ("go to the {x}", "find your way to the {x}", "be in the {x}"),
    },
    messages={
        "room": (
            "You are in the {x}.",
            "This is the {x}.",
            "You look around the {x}.",
            "Around you is the {x}.",
        ),
        "floor": (
            "On the floor you see {things}.",
            "Here lies {things}.",
            "Somebody left {things} on the ground.",
        ),
        "supporter": (
            "On the {x} you see {things}.",
            "The {x} carries {things}.",
            "There is a {x} with {things} on top.",
        ),
        "supporter_empty": (
            "The {x} is bare.",
            "There is nothing on the {x}.",
            "Here stands the {x} with nothing on it.",
        ),
        "container": (
            "The {x} is open and holds {things}.",
            "In the open {x} you see {things}.",
            "The {x} stands open: inside there is {things}.",
        ),
        "container_open": (
            "The {x} is open and empty.",
            "The open {x} holds nothing.",
            "The {x} stands open; nothing is inside.",
        ),
        "container_closed": (
            "The {x} is closed.",
            "Here is the {x}, which is closed.",
            "You notice the closed {x}.",
        ),
        "container_locked": (
            "The {x} is locked.",
            "Here is the {x}, which is locked.",
            "You notice the locked {x}.",
        ),
        "note": ("A note hangs on the wall.", "There is a note.", "Someone has pinned a note here."),
        "exits": ("Exits: {things}.", "You can leave by {things}.", "The ways out: {things}."),
        "exit": ("{way}", "the {way}"),
        "exit_open": ("{way} through the open {x}", "the {way} where the {x} is open"),
        "exit_closed": ("{way} through the closed {x}", "the {way} where the {x} is closed"),
        "exit_locked": ("{way} through the locked {x}", "the {way} where the {x} is locked"),
        "read": ("The note says: {goal}.", "You read the note: {goal}.", "On the note is written: {goal}."),
        "item": ("You see the {x}.", "The {x} is nothing special.", "It is just the {x}."),
        "inventory": (
            "You carry {things}.",
            "You have {things} with you.",
            "In your hands you have {things}.",
        ),
        "inventory_empty": ("You carry nothing.", "You have nothing with you.", "Your hands are empty."),
        "take": ("You take the {x}.", "Taken: the {x}.", "Now the {x} is yours."),
        "drop": ("You drop the {x}.", "Dropped: the {x}.", "The {x} lies on the floor now."),
        "put": (
            "You put the {x} on the {y}.",
            "Done: the {x} is on the {y}.",
            "The {x} sits on the {y} now.",
        ),
        "insert": (
            "You insert the {x} into the {y}.",
            "Done: the {x} is in the {y}.",
            "The {x} is in the {y} now.",
        ),
        "eat": ("You eat the {x}.", "Eaten: the {x}.", "You finish the {x}; not bad."),
        "open": ("You open the {x}.", "Opened: the {x}.", "The {x} swings open."),
        "open_on": (
            "You open the {x} and see {things}.",
            "Opened: the {x}. Inside is {things}.",
            "The {x} is open now and shows {things}.",
        ),
        "open_empty": (
            "You open the {x}; it is empty.",
            "Opened: the {x}. Nothing is inside.",
            "The {x} is open now and shows nothing.",
        ),
        "close": ("You close the {x}.", "Closed: the {x}.", "The {x} falls shut."),
        "unlock": ("You unlock the {x}.", "Unlocked: the {x}.", "The lock of the {x} clicks free."),
        "lock": ("You lock the {x}.", "Locked: the {x}.", "The lock of the {x} snaps."),
        "is_open": ("The {x} is open.", "You find that the {x} is open.", "The {x} stands open."),
        "is_closed": ("The {x} is closed.", "You find that the {x} is closed.", "The {x} is shut."),
        "is_locked": (
            "The {x} is locked.",
            "You find that the {x} is locked.",
            "The {x} has its lock turned.",
        ),
        "cannot": ("You cannot do that.", "That is not possible.", "That makes no sense here."),
        "unseen": ("You see no such thing.", "Nothing of that kind is here.", "You look for it in vain."),
        "unclear": ("Which one?", "Which one do you mean?", "There is more than one of these."),
        "carried": ("You carry the {x}.", "You have the {x} with you.", "The {x} is in your hands."),
        "not_carried": ("You do not carry the {x}.", "You have no {x} with you.", "First take the {x}."),
        "elsewhere": (
            "The {x} is not there.",
            "You do not find the {x} there.",
            "There is no {x} in that place.",
        ),
        "wrong_key": ("That is the wrong key.", "This key does not fit.", "The key does not turn."),
        "which_key": ("With which key?", "You must name the key.", "Say which key you want to use."),
        "no_exit": ("There is no exit that way.", "You cannot go that way.", "No way leads there."),
        "won": ("You win.", "You have done it!", "Well done, the task is finished."),
        "lost": ("You lose.", "Now it can no longer be done.", "You have spoilt it for good."),
    },
)
