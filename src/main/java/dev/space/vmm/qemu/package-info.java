/// The QEMU driver.
@NullMarked
package dev.space.vmm.qemu;

import org.jspecify.annotations.NullMarked;
