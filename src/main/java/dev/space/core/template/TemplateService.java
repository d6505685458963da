package dev.space.core.template;

import dev.space.core.access.Caller;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.operation.Operation;
import dev.space.core.store.Page;
import java.io.InputStream;
import java.util.List;
import java.util.Optional;

/// Templates: build, list, tag, delete.
public final class TemplateService {

  /// Builds a template from a recipe directory that comes as a tar stream.
  public Operation build(
      Caller caller, TemplateRef.Tagged as, InputStream recipeTar, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  /// Lines of a build's log after line `after`, waiting for more until the build is over.
  public void buildLog(Caller caller, String operationId, long after, LogSink sink) {
    throw new UnsupportedOperationException();
  }

  @FunctionalInterface
  public interface LogSink {
    void accept(long line, String text);
  }

  /// @throws dev.space.core.error.SpaceException TEMPLATE_NOT_FOUND
  public Template get(Caller caller, TemplateRef ref) {
    throw new UnsupportedOperationException();
  }

  public Page<Template> list(Caller caller, int limit, Optional<String> cursor) {
    throw new UnsupportedOperationException();
  }

  /// Points a tag at a template, moving it if it was elsewhere.
  public Template tag(Caller caller, TemplateRef ref, TemplateRef.Tagged as) {
    throw new UnsupportedOperationException();
  }

  public void untag(Caller caller, TemplateRef.Tagged tag) {
    throw new UnsupportedOperationException();
  }

  /// Deletes a template with all its tags.
  ///
  /// @throws dev.space.core.error.SpaceException CONFLICT while sandboxes or snapshots need it
  public void delete(Caller caller, TemplateRef ref) {
    throw new UnsupportedOperationException();
  }

  /// Tags of a template name with what they lead to.
  public List<Template> tagged(Caller caller, String name) {
    throw new UnsupportedOperationException();
  }
}
