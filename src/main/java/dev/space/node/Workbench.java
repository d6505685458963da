package dev.space.node;

import dev.space.core.guest.GuestConnector;
import dev.space.core.node.TemplateImages;
import dev.space.core.node.WritableDisks;
import dev.space.core.vm.Vmm;

/// What all parts of a node work with.
record Workbench(
    NodeSettings settings,
    Folders folders,
    Journal journal,
    Vmm vmm,
    GuestConnector connector,
    TemplateImages images,
    WritableDisks disks,
    Admission admission,
    FailPoints failPoints) {}
