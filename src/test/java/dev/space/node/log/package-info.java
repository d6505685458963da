@NullMarked
package dev.space.node.log;

import org.jspecify.annotations.NullMarked;
