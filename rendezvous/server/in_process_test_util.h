// An in-process gRPC server, without a network, for tests of services; and a queue of posted
// values.
#ifndef RENDEZVOUS_SERVER_IN_PROCESS_TEST_UTIL_H_
#define RENDEZVOUS_SERVER_IN_PROCESS_TEST_UTIL_H_

#include <deque>
#include <memory>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/grpc.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::server {

// Values that one thread puts in and another waits for. Thread-safe.
template <typename T>
class Inbox {
 public:
  void Put(T value) {
    absl::MutexLock lock(&mu_);
    values_.push_back(std::move(value));
  }

  T Next() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::deque<T>* values) { return !values->empty(); }, &values_));
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

  bool empty() {
    absl::MutexLock lock(&mu_);
    return values_.empty();
  }

 private:
  absl::Mutex mu_;
  std::deque<T> values_ ABSL_GUARDED_BY(mu_);
};

// The next event, which must be of this kind.
template <typename Kind>
Kind NextEvent(Inbox<membership::Event>& events) {
  return std::get<Kind>(events.Next());
}

// Serves `service` until this object is destroyed. REQUIRES: calls and streams end by then.
class InProcessServer {
 public:
  explicit InProcessServer(grpc::Service* service) {
    grpc_init();  // for good: see KeepGrpc in security/tls_credentials.cc
    grpc::ServerBuilder builder;
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel(grpc::ChannelArguments());
  }
  ~InProcessServer() { server_->Shutdown(); }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_IN_PROCESS_TEST_UTIL_H_
