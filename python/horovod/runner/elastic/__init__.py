"""What of Horovod's elastic driver is here: the interface for sources of hosts."""
