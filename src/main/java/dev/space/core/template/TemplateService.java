package dev.space.core.template;

import dev.space.core.access.Caller;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.node.NodeRuntime;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Ledger;
import dev.space.core.operation.Operation;
import dev.space.core.operation.OperationKind;
import dev.space.core.operation.OperationService;
import dev.space.core.store.Page;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.core.template.TemplateBuilder.Staged;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/// Templates: build, list, tag, delete.
public final class TemplateService {

  /// How long a reader of a log waits at a time for a build that isn't writing.
  private static final Duration END_WAIT = Duration.ofMillis(200);

  private final Ledger ledger;
  private final OperationService operations;
  private final TemplateBuilder builder;
  private final NodeRuntime node;
  private final BuildLogs logs;
  private volatile Runnable tagListener = () -> {};

  public TemplateService(
      Ledger ledger,
      OperationService operations,
      TemplateBuilder builder,
      NodeRuntime node,
      BuildLogs logs) {
    this.ledger = ledger;
    this.operations = operations;
    this.builder = builder;
    this.node = node;
    this.logs = logs;
  }

  /// Who is told, after the fact, that a tag leads somewhere else than before. One listener; it
  /// looks up for itself what it wants to know.
  public void onTagMove(Runnable listener) {
    tagListener = listener;
  }

  /// Builds a template from a recipe directory that comes as a tar stream. A recipe that is wrong
  /// is refused here; the operation's result is the digest.
  ///
  /// @throws SpaceException RECIPE_INVALID, BODY_TOO_LARGE, MALFORMED_BODY
  public Operation build(
      Caller caller, TemplateRef.Tagged as, InputStream recipeTar, Optional<IdempotencyKey> key) {
    Staged staged = builder.stage(recipeTar);
    try {
      return operations.submit(
          caller, OperationKind.TEMPLATE_BUILD, Map.of(), key, new Build(caller, as, staged));
    } catch (RuntimeException e) {
      staged.close();
      throw e;
    }
  }

  private final class Build implements OperationService.Work {
    private final Caller caller;
    private final TemplateRef.Tagged as;
    private final Staged staged;

    Build(Caller caller, TemplateRef.Tagged as, Staged staged) {
      this.caller = caller;
      this.as = as;
      this.staged = staged;
    }

    @Override
    public OperationService.Result run(Operation operation, Consumer<String> progress) {
      try (staged;
          BuildLogs.Writer log = logs.open(operation.id(), progress)) {
        try {
          Built built = staged.build(ref -> get(caller, ref).digest(), log);
          bootOnce(built, log);
          Template template = template(as, built);
          return new OperationService.Result(
              List.of(built.digest()),
              tx -> {
                tx.templates().insert(caller.project(), template);
                tx.templates().tag(caller.project(), as, built.digest());
              },
              tagListener);
        } catch (SpaceException e) {
          log.line("failed: " + e.problem().oneLine());
          throw e;
        }
      }
    }

    private void bootOnce(Built built, BuildLogs.Writer log) {
      log.step("booting the template once");
      try {
        node.prepare(built.digest(), log::step);
      } catch (RuntimeException e) {
        removeUnused(built.digest());
        throw e;
      }
    }

    @Override
    public void answeredBefore() {
      staged.close();
    }
  }

  private void removeUnused(String digest) {
    if (!ledger.store().read(tx -> tx.templates().anyOf(digest))) {
      node.deleteTemplate(digest);
    }
  }

  private Template template(TemplateRef.Tagged as, Built built) {
    return new Template(
        built.digest(),
        as.name(),
        List.of(as.toString()),
        built.defaults(),
        built.rootBytes(),
        ledger.now());
  }

  /// Records a template that is built already, such as the base template of a setup, and points the
  /// tag at it.
  public Template register(String project, TemplateRef.Tagged as, Built built) {
    return ledger
        .store()
        .transact(
            tx -> {
              tx.templates().insert(project, template(as, built));
              tx.templates().tag(project, as, built.digest());
              return tx.templates().find(project, as).orElseThrow(() -> notFound(as));
            });
  }

  /// Lines of a build's log after line `after` (0 gives all), waiting for more until the build is
  /// over or the thread is interrupted.
  ///
  /// @throws SpaceException OPERATION_NOT_FOUND; NOT_FOUND when the log is kept no more
  public void buildLog(Caller caller, String operationId, long after, LogSink sink) {
    Operation operation = operations.get(caller, operationId, Duration.ZERO);
    if (operation.kind() != OperationKind.TEMPLATE_BUILD) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "this operation is no template build")
          .remedy("Give the id that the build was answered with; other operations have no log.")
          .toException();
    }
    logs.follow(
        operationId,
        after,
        () -> operations.get(caller, operationId, END_WAIT).state().isTerminal(),
        sink);
  }

  /// Up to `max` lines that a build's log has after line `after`, without waiting for more; none
  /// when the log is kept no more.
  ///
  /// @throws SpaceException OPERATION_NOT_FOUND
  public List<String> buildLogSoFar(Caller caller, String operationId, long after, int max) {
    Operation operation = operations.get(caller, operationId, Duration.ZERO);
    return logs.soFar(operation.id(), after, max);
  }

  /// Takes log lines, numbered from 1; may block.
  @FunctionalInterface
  public interface LogSink {
    void accept(long line, String text);
  }

  /// @throws SpaceException TEMPLATE_NOT_FOUND
  public Template get(Caller caller, TemplateRef ref) {
    return ledger
        .store()
        .<Optional<Template>>read(tx -> tx.templates().find(caller.project(), ref))
        .orElseThrow(() -> notFound(ref));
  }

  /// Templates, newest first.
  ///
  /// @param limit 1 to 1000
  public Page<Template> list(Caller caller, int limit, Optional<String> cursor) {
    return ledger.store().read(tx -> tx.templates().list(caller.project(), limit, cursor));
  }

  /// Points a tag at a template, moving it if it was elsewhere.
  ///
  /// @throws SpaceException TEMPLATE_NOT_FOUND
  public Template tag(Caller caller, TemplateRef ref, TemplateRef.Tagged as) {
    Template tagged =
        ledger
            .store()
            .transact(
                tx -> {
                  Template template =
                      tx.templates().find(caller.project(), ref).orElseThrow(() -> notFound(ref));
                  tx.templates().tag(caller.project(), as, template.digest());
                  return tx.templates().find(caller.project(), as).orElseThrow(() -> notFound(as));
                });
    tagListener.run();
    return tagged;
  }

  /// Removes a tag; the template stays.
  ///
  /// @throws SpaceException TEMPLATE_NOT_FOUND when there is no such tag
  public void untag(Caller caller, TemplateRef.Tagged tag) {
    if (!ledger.store().transact(tx -> tx.templates().untag(caller.project(), tag))) {
      throw notFound(tag);
    }
    tagListener.run();
  }

  /// Deletes a template with all its tags. Its images go when no project has it any more.
  ///
  /// @throws SpaceException TEMPLATE_NOT_FOUND; CONFLICT while sandboxes or snapshots need it
  public void delete(Caller caller, TemplateRef ref) {
    // The record goes first, in the transaction that finds nobody using it: a create that comes
    // later finds no template. Images that a crash leaves behind are removed by a later build or
    // delete of the same digest.
    String digest =
        ledger
            .store()
            .transact(
                tx -> {
                  Template template =
                      tx.templates().find(caller.project(), ref).orElseThrow(() -> notFound(ref));
                  if (tx.sandboxes().anyOfTemplate(template.digest())
                      || tx.snapshots().anyOfTemplate(template.digest())) {
                    throw Problem.of(ErrorCode.CONFLICT, "template " + ref + " is in use")
                        .because("sandboxes or snapshots were made from it")
                        .remedy("Delete those first; 'space sandbox ls' lists them.")
                        .toException();
                  }
                  tx.templates().delete(caller.project(), template.digest());
                  return template.digest();
                });
    // First, so that no pool makes VMs of what is about to go.
    tagListener.run();
    removeUnused(digest);
  }

  /// Templates that tags of this name lead to.
  public List<Template> tagged(Caller caller, String name) {
    return ledger.store().read(tx -> tx.templates().tagged(caller.project(), name));
  }

  private static SpaceException notFound(TemplateRef ref) {
    return Problem.of(ErrorCode.TEMPLATE_NOT_FOUND, "there is no template " + ref)
        .remedy("'space template ls' lists those there are; 'space template build' makes one.")
        .toException();
  }
}
