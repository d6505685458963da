package dev.space.app;

import dev.space.core.guest.GuestConnector;
import dev.space.core.node.TemplateImages;
import dev.space.core.node.WritableDisks;
import dev.space.core.template.TemplateBuilder;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.core.vm.Vmm;

/// What a node runs VMs with: a monitor and what belongs to it.
///
/// @param base the template that every data directory has, as `base:latest`
record Driver(
    Vmm vmm,
    GuestConnector connector,
    TemplateImages images,
    WritableDisks disks,
    TemplateBuilder builder,
    Built base) {}
