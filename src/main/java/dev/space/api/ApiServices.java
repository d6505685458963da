package dev.space.api;

import dev.space.core.access.ApiKeys;
import dev.space.core.event.EventService;
import dev.space.core.node.NodeRuntime;
import dev.space.core.operation.OperationService;
import dev.space.core.sandbox.SandboxService;
import dev.space.core.session.SessionService;
import dev.space.core.snapshot.SnapshotService;
import dev.space.core.template.TemplateService;
import dev.space.core.usage.UsageService;

/// What the API stands on.
public record ApiServices(
    ApiKeys keys,
    SandboxService sandboxes,
    OperationService operations,
    SessionService sessions,
    TemplateService templates,
    SnapshotService snapshots,
    EventService events,
    UsageService usage,
    NodeRuntime node) {}
