@NullMarked
package dev.space.core.template;

import org.jspecify.annotations.NullMarked;
