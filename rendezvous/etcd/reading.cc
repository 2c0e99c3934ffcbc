#include "rendezvous/etcd/reading.h"

#include "base/status_macros.h"

namespace hvd::rendezvous::etcd {
namespace {

constexpr int kPage = 32;  // keys per page; a value has some 512 KiB
constexpr absl::Duration kPause = absl::Milliseconds(200);  // between two attempts

absl::StatusOr<etcdserverpb::RangeResponse> Read(KeyValueStore& store, const Leadership& leadership,
                                                 const etcdserverpb::RangeRequest& request) {
  while (true) {
    RETURN_IF_ERROR(leadership.state());
    absl::StatusOr<etcdserverpb::RangeResponse> found = store.Range(request);
    if (found.ok()) return found;
    leadership.AwaitLoss(leadership.clock().Now() + kPause);
  }
}

}  // namespace

absl::StatusOr<std::optional<std::string>> ReadKey(KeyValueStore& store,
                                                   const Leadership& leadership,
                                                   const std::string& key) {
  etcdserverpb::RangeRequest request;
  request.set_key(key);
  ASSIGN_OR_RETURN(const etcdserverpb::RangeResponse found, Read(store, leadership, request));
  if (found.kvs_size() == 0) return std::nullopt;
  return found.kvs(0).value();
}

absl::Status ReadRange(KeyValueStore& store, const Leadership& leadership, const KeyRange& range,
                       const std::function<absl::Status(const etcdserverpb::KeyValue&)>& visit) {
  etcdserverpb::RangeRequest request;
  request.set_key(range.begin);
  request.set_range_end(range.end);
  request.set_limit(kPage);
  while (true) {
    ASSIGN_OR_RETURN(const etcdserverpb::RangeResponse page, Read(store, leadership, request));
    for (const etcdserverpb::KeyValue& found : page.kvs()) RETURN_IF_ERROR(visit(found));
    if (!page.more() || page.kvs_size() == 0) return absl::OkStatus();
    // The smallest key after the last one of this page.
    request.set_key(page.kvs(page.kvs_size() - 1).key() + '\0');
  }
}

}  // namespace hvd::rendezvous::etcd
