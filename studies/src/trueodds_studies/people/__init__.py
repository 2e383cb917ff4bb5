"""What the study of people is made of: who was asked, what is measured, what a paper says, and the pictures."""
