/// Configuration and assembly.
@NullMarked
package dev.space.app;

import org.jspecify.annotations.NullMarked;
