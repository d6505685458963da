/// Attach streams, file bodies and ports.
@NullMarked
package dev.space.dataplane;

import org.jspecify.annotations.NullMarked;
