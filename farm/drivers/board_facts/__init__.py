"""What boards tell of themselves: releases, device trees, processors, vendors' tools. Pure."""
