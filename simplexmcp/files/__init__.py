"""Files of chats: which may be sent, their private copies and previews; downloads (flows 13 to 16)."""
