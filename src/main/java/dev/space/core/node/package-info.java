/// The interface of a host that runs VMs.
@NullMarked
package dev.space.core.node;

import org.jspecify.annotations.NullMarked;
