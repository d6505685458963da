/// Snapshots of sandboxes, which are sources for creates.
@NullMarked
package dev.space.core.snapshot;

import org.jspecify.annotations.NullMarked;
