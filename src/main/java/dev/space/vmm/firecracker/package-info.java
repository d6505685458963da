/// The Firecracker driver.
@NullMarked
package dev.space.vmm.firecracker;

import org.jspecify.annotations.NullMarked;
