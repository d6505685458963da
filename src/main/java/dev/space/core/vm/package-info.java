/// The interface that virtual machine monitors implement.
@NullMarked
package dev.space.core.vm;

import org.jspecify.annotations.NullMarked;
