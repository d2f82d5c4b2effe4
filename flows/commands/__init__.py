"""One file a command of `passnet`: reading options, calling the room that does the work, showing the answer."""
