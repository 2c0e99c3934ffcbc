// What a daemon shows over HTTP: /metrics, /healthz and /readyz.
#ifndef RENDEZVOUS_SERVER_STATUS_PAGES_H_
#define RENDEZVOUS_SERVER_STATUS_PAGES_H_

#include <string>

#include "rendezvous/server/http_listener.h"
#include "rendezvous/server/server.h"

namespace hvd {

// /metrics: the job in Prometheus' text format; /healthz: "ok"; /readyz: the job's state and what
// it waits for, 503 once it is over. Anything else: 404.
HttpResponse AnswerStatusPage(const std::string& path, Server& server);

}  // namespace hvd

#endif  // RENDEZVOUS_SERVER_STATUS_PAGES_H_
