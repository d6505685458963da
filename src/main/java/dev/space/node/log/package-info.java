/// The output of sessions on the node's disk: numbered events in bounded segment files.
@NullMarked
package dev.space.node.log;

import org.jspecify.annotations.NullMarked;
