"""Speed of reading, judging and training, each beside a rival."""
