package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.http.Json;
import dev.space.http.ProblemJson;
import dev.space.http.RequestIds;
import java.nio.ByteBuffer;
import java.util.Optional;
import org.eclipse.jetty.http.HttpException;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.handler.ErrorHandler;
import org.eclipse.jetty.util.Callback;

/// Errors that Jetty finds by itself, in requests that never reach a handler, as problems like all
/// others.
final class BadMessageHandler extends ErrorHandler {
  private final RequestIds ids;

  BadMessageHandler(RequestIds ids) {
    this.ids = ids;
  }

  @Override
  public boolean handle(Request request, Response response, Callback callback) {
    int status = response.getStatus() == 0 ? 500 : response.getStatus();
    String reason =
        request.getAttribute(ERROR_EXCEPTION) instanceof HttpException known
                && known.getReason() != null
            ? known.getReason()
            : "";
    int told = status == HttpStatus.HTTP_VERSION_NOT_SUPPORTED_505 ? 400 : status;
    response.setStatus(told);
    response.write(true, body(status, told, reason, response.getHeaders()), callback);
    return true;
  }

  /// @param told the status of the answer: a client's mistake is never a 5xx
  private ByteBuffer body(int status, int told, String reason, HttpFields.Mutable headers) {
    String id = ids.forRequest(Optional.empty());
    Problem problem =
        switch (status) {
          case HttpStatus.REQUEST_HEADER_FIELDS_TOO_LARGE_431, HttpStatus.URI_TOO_LONG_414 ->
              Problem.of(ErrorCode.HEADERS_TOO_LARGE, "The URL and headers are too large")
                  .remedy("Send fewer or shorter headers.");
          case HttpStatus.REQUEST_TIMEOUT_408 ->
              Problem.of(ErrorCode.REQUEST_TIMEOUT, "The request did not come in time")
                  .remedy("Send without long pauses.");
          case HttpStatus.HTTP_VERSION_NOT_SUPPORTED_505 ->
              Problem.of(ErrorCode.INVALID_REQUEST, "The HTTP version is not served here")
                  .remedy("Use HTTP/1.1 or HTTP/2.");
          default ->
              status < 500
                  ? Problem.of(ErrorCode.INVALID_REQUEST, "The request is not valid HTTP")
                      .remedy("Check the request line and the headers.")
                  : Problem.of(ErrorCode.INTERNAL, "The server hit a defect")
                      .remedy("Report it with the request id.");
        };
    if (!reason.isBlank() && told < 500) {
      problem = problem.because(reason);
    }
    byte[] json = Json.bytes(ProblemJson.of(problem, told, id));
    headers.put(HttpHeader.CONTENT_TYPE, ProblemJson.CONTENT_TYPE);
    headers.put(HttpHeader.CONTENT_LENGTH, json.length);
    headers.put(RequestIds.HEADER, id);
    return ByteBuffer.wrap(json);
  }
}
