package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.util.Collection;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.Collectors;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.core.exc.InputCoercionException;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.core.exc.StreamReadException;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.DatabindException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.cfg.CoercionAction;
import tools.jackson.databind.cfg.CoercionInputShape;
import tools.jackson.databind.cfg.EnumFeature;
import tools.jackson.databind.exc.InvalidNullException;
import tools.jackson.databind.exc.MismatchedInputException;
import tools.jackson.databind.exc.UnrecognizedPropertyException;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.type.LogicalType;

/// JSON in and out: snake_case, absent values left out, and nothing guessed on the way in. Unknown
/// fields, wrong types, duplicates and trailing text are refused by name.
public final class Json {
  public static final String CONTENT_TYPE = "application/json";

  private static final int DEPTH_MAX = 32;
  private static final int STRING_CHARS_MAX = 8 * 1024 * 1024;
  private static final int NUMBER_CHARS_MAX = 40;
  private static final int NAME_CHARS_MAX = 1024;

  private static final JsonMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder()
                          .maxNestingDepth(DEPTH_MAX)
                          .maxStringLength(STRING_CHARS_MAX)
                          .maxNumberLength(NUMBER_CHARS_MAX)
                          .maxNameLength(NAME_CHARS_MAX)
                          .build())
                  .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                  .disable(StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION)
                  .build())
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
          .disable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY)
          .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
          .withCoercionConfig(
              LogicalType.Textual,
              text ->
                  text.setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                      .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                      .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail))
          .enable(EnumFeature.FAIL_ON_NUMBERS_FOR_ENUMS)
          .changeDefaultPropertyInclusion(
              inclusion ->
                  inclusion.withValueInclusion(
                      com.fasterxml.jackson.annotation.JsonInclude.Include.NON_ABSENT))
          .build();

  private Json() {}

  /// The mapper itself, for code that builds trees.
  public static JsonMapper mapper() {
    return MAPPER;
  }

  public static byte[] bytes(Object value) {
    return MAPPER.writeValueAsBytes(value);
  }

  public static String text(Object value) {
    return MAPPER.writeValueAsString(value);
  }

  /// Answers with JSON.
  public static void send(Exchange exchange, int status, Object value) {
    exchange.status(status).send(CONTENT_TYPE, bytes(value));
  }

  /// The request's body as a record whose components that may be absent are `Optional`s.
  ///
  /// @throws SpaceException UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, MALFORMED_BODY, UNKNOWN_FIELD
  ///   or INVALID_REQUEST
  public static <T> T read(Exchange exchange, Class<T> type, int bytesMax) {
    requireMediaType(exchange, CONTENT_TYPE);
    return parse(exchange.bodyBytes(bytesMax), type);
  }

  /// The same for bodies that may be left out, which then read as `{}`.
  public static <T> T readOrEmpty(Exchange exchange, Class<T> type, int bytesMax) {
    byte[] body = exchange.bodyBytes(bytesMax);
    if (body.length == 0) {
      return parse(new byte[] {'{', '}'}, type);
    }
    requireMediaType(exchange, CONTENT_TYPE);
    return parse(body, type);
  }

  /// Refuses a body of another media type. Parameters other than a charset are let pass.
  public static void requireMediaType(Exchange exchange, String expected) {
    String sent = exchange.header("Content-Type").orElse("");
    String[] parts = sent.split(";");
    boolean right = parts.length > 0 && parts[0].strip().equalsIgnoreCase(expected);
    for (int i = 1; i < parts.length; i++) {
      String parameter = parts[i].strip().toLowerCase(Locale.ROOT).replace("\"", "");
      right &= !parameter.startsWith("charset=") || parameter.equals("charset=utf-8");
    }
    if (!right) {
      throw Problem.of(
              ErrorCode.UNSUPPORTED_MEDIA_TYPE,
              sent.isEmpty()
                  ? "The request has no Content-Type"
                  : "The Content-Type '" + Shown.of(sent) + "' is not taken here")
          .remedy("Send the body as " + expected + " and say so in the Content-Type header.")
          .toException();
    }
  }

  /// A body whose fields are looked up one by one.
  ///
  /// @throws JacksonException when it is not valid JSON
  /// @throws SpaceException MALFORMED_BODY when half of a character is escaped in it
  public static JsonNode tree(byte[] body) {
    requireWholeCharacters(body);
    return MAPPER.readTree(body);
  }

  private static void requireWholeCharacters(byte[] body) {
    if (Surrogates.alone(body)) {
      throw malformed("an escape stands for half of a character")
          .remedy("Escape both halves of a surrogate pair, or send the character as UTF-8.")
          .toException();
    }
  }

  static <T> T parse(byte[] body, Class<T> type) {
    requireWholeCharacters(body);
    try {
      T value = MAPPER.readValue(body, type);
      if (value == null) {
        throw malformed("it is null").toException();
      }
      return value;
    } catch (JacksonException e) {
      throw problem(e).toException(e);
    }
  }

  private static Problem problem(JacksonException e) {
    return switch (e) {
      case UnrecognizedPropertyException unknown ->
          Problem.of(ErrorCode.UNKNOWN_FIELD, "Unknown field '" + Shown.of(path(unknown)) + "'")
              .remedy("Use only: " + names(unknown.getKnownPropertyIds()) + ".");
      case InvalidNullException nothing ->
          Problem.of(
                  ErrorCode.INVALID_REQUEST, "The field '" + Shown.of(path(nothing)) + "' is null")
              .remedy("Give it a value or leave it out.");
      case MismatchedInputException wrong ->
          Problem.of(
                  ErrorCode.INVALID_REQUEST,
                  path(wrong).isEmpty()
                      ? "The body has the wrong type"
                      : "The field '" + Shown.of(path(wrong)) + "' has the wrong type or value")
              .remedy("It must be " + expected(wrong.getTargetType()) + ".");
      case InputCoercionException beyond ->
          Problem.of(
                  ErrorCode.INVALID_REQUEST,
                  "The field '" + Shown.of(path(beyond)) + "' is out of range")
              .remedy("It must be " + expected(beyond.getTargetType()) + ".");
      case StreamConstraintsException beyond ->
          malformed(firstLine(beyond)).remedy("Nest less deeply, with shorter names and numbers.");
      case StreamReadException syntax -> malformed(firstLine(syntax));
      case DatabindException other when other.getCause() instanceof SpaceException own ->
          own.problem();
      default ->
          Problem.of(
                  ErrorCode.INVALID_REQUEST,
                  path(e).isEmpty()
                      ? "The body can't be read"
                      : "The field '" + Shown.of(path(e)) + "' can't be read")
              .because(firstLine(e))
              .remedy("Send what openapi.yaml says of this call.");
    };
  }

  private static Problem malformed(String why) {
    return Problem.of(ErrorCode.MALFORMED_BODY, "The body is not valid JSON")
        .because(why)
        .remedy("Send one JSON object.");
  }

  private static String path(JacksonException e) {
    var path = new StringBuilder();
    for (JacksonException.Reference step : e.getPath()) {
      if (step.getPropertyName() == null) {
        path.append('[').append(step.getIndex()).append(']');
      } else {
        path.append(path.isEmpty() ? "" : ".").append(step.getPropertyName());
      }
    }
    return path.toString();
  }

  private static String names(@org.jspecify.annotations.Nullable Collection<Object> known) {
    return known == null
        ? "the fields in /openapi.yaml"
        : known.stream()
            .map(Object::toString)
            .collect(Collectors.toCollection(TreeSet::new))
            .stream()
            .collect(Collectors.joining(", "));
  }

  private static String expected(@org.jspecify.annotations.Nullable Class<?> type) {
    if (type == null) {
      return "as in /openapi.yaml";
    }
    if (type == Integer.class || type == int.class || type == Long.class || type == long.class) {
      return "a whole number" + (type == int.class || type == Integer.class ? " of 32 bits" : "");
    }
    if (type == Boolean.class || type == boolean.class) {
      return "true or false";
    }
    if (type == String.class) {
      return "a string";
    }
    return Collection.class.isAssignableFrom(type) ? "an array" : "an object";
  }

  private static String firstLine(JacksonException e) {
    String message = e.getOriginalMessage();
    return Shown.of(
        message == null ? "it can't be parsed" : message.lines().findFirst().orElse(""));
  }
}
