/// The domain. Imports nothing but the JDK, SLF4J and itself.
@NullMarked
package dev.space.core;

import org.jspecify.annotations.NullMarked;
