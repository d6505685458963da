/// Changed pages of a guest's memory: how they are found, kept in a file and put back. Independent
/// of the VMM.
@NullMarked
package dev.space.vmm.memory;

import org.jspecify.annotations.NullMarked;
