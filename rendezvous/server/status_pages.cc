#include "rendezvous/server/status_pages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/reporting/metrics.h"

namespace hvd::rendezvous::server {

namespace {

net::HttpResponse Metrics(Server& server) {
  net::HttpResponse response;
  response.content_type = reporting::kMetricsContentType;
  response.body = server.Metrics();
  return response;
}

net::HttpResponse Readiness(Server& server) {
  net::HttpResponse response;
  const membership::Membership::View view = server.Describe();
  if (IsOver(view.state)) response.code = 503;
  response.body = absl::StrCat(StateName(view.state), ": ", view.explanation, "\n");
  return response;
}

net::HttpResponse Plain(int code, std::string body) {
  net::HttpResponse response;
  response.code = code;
  response.body = std::move(body);
  return response;
}

bool AsksTheJob(const std::string& path) { return path == "/metrics" || path == "/readyz"; }

net::HttpResponse NoSuchPage() { return Plain(404, "there are /metrics, /healthz and /readyz\n"); }

}  // namespace

net::HttpResponse AnswerStandbyPage(const std::string& path) {
  if (AsksTheJob(path)) return Plain(503, "this daemon serves no job yet\n");
  return path == "/healthz" ? Plain(200, "ok\n") : NoSuchPage();
}

net::HttpResponse AnswerStatusPage(const std::string& path, Server& server) {
  const bool asks = AsksTheJob(path);
  if (!asks && path != "/healthz") return NoSuchPage();
  // Asked first: Describe and Metrics would block for kPatience in each request while the job's
  // thread hangs. /healthz has more patience, since its failure may have an orchestrator kill this
  // process.
  const absl::Duration busy = server.BusyFor();
  if (busy >= (asks ? kAnswerPatience : kHealthPatience)) {
    return Plain(503, absl::StrCat("nothing has been decided for ", absl::ToInt64Seconds(busy),
                                   "s: does the disk of --state-dir hang?\n"));
  }
  if (path == "/metrics") return Metrics(server);
  return asks ? Readiness(server) : Plain(200, "ok\n");
}

}  // namespace hvd::rendezvous::server
