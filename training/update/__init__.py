"""One update: episodes with advantages become optimizer steps of policy and critic."""
