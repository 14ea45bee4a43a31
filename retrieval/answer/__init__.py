"""What the caller gets: selected memories, their texts and snippets, responses and context packs."""
