/// A driver without VMs, for tests and benchmarks of the control plane.
@NullMarked
package dev.space.vmm.simulated;

import org.jspecify.annotations.NullMarked;
