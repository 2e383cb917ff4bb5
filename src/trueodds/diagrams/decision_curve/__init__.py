"""Decision curve: net benefit by threshold, compared with treating everyone and treating no one."""
