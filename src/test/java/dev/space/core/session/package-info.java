@NullMarked
package dev.space.core.session;

import org.jspecify.annotations.NullMarked;
