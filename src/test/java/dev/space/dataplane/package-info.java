@NullMarked
package dev.space.dataplane;

import org.jspecify.annotations.NullMarked;
