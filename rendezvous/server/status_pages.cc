#include "rendezvous/server/status_pages.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/server/metrics.h"

namespace hvd {

HttpResponse AnswerStatusPage(const std::string& path, Server& server) {
  HttpResponse response;
  if (path == "/metrics") {
    response.content_type = kMetricsContentType;
    response.body = server.Metrics();
  } else if (path == "/healthz") {
    response.body = "ok\n";
  } else if (path == "/readyz") {
    const Membership::View view = server.Describe();
    if (view.state == "done" || view.state == "failed") response.code = 503;
    response.body = absl::StrCat(view.state, ": ", view.explanation, "\n");
  } else {
    response.code = 404;
    response.body = "there are /metrics, /healthz and /readyz\n";
  }
  return response;
}

}  // namespace hvd
