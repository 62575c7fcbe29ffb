"""The lab simulates, attacks and measures; nothing in the runtime imports it."""
