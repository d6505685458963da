/// VMs of one host: directories, disks, base snapshots, warm pools, journal, adoption.
@NullMarked
package dev.space.node;

import org.jspecify.annotations.NullMarked;
