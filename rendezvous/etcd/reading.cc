#include "rendezvous/etcd/reading.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rendezvous/etcd/lease_schedule.h"

namespace hvd::rendezvous::etcd {
namespace {

constexpr int kPage = 32;  // keys per page; a value has some 512 KiB
constexpr absl::Duration kPause = absl::Milliseconds(200);  // between two attempts

absl::StatusOr<etcdserverpb::RangeResponse> Read(KeyValueStore& store, const Leadership& leadership,
                                                 const etcdserverpb::RangeRequest& request) {
  while (true) {
    // The loss of the leadership ends the loop: the keeper of the lease has the time limit, and
    // here is none.
    RETURN_IF_ERROR(leadership.state());
    absl::StatusOr<etcdserverpb::RangeResponse> found = store.Range(request, LeaseSchedule::kLease);
    if (found.ok()) return found;
    // As in a campaign, which needs only the leader's key: a daemon that begins says at once that
    // it lacks a right.
    if (absl::IsPermissionDenied(found.status())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--etcd: etcd at ", store.name(), " refuses to read ", request.key(), ": ",
          found.status().message(), "; the user needs the right to read and write all keys with ",
          "the prefix ", JobPrefixOf(request.key())));
    }
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
  // In pages of some 16 MiB, so that each answer comes within the time limit of a call. The pages
  // need not be of one revision: only the leader writes, and that is this daemon.
  request.set_limit(kPage);
  while (true) {
    ASSIGN_OR_RETURN(const etcdserverpb::RangeResponse page, Read(store, leadership, request));
    for (const etcdserverpb::KeyValue& found : page.kvs()) RETURN_IF_ERROR(visit(found));
    if (!page.more() || page.kvs_size() == 0) return absl::OkStatus();
    const std::string& last = page.kvs(page.kvs_size() - 1).key();
    if (last < request.key() || last >= range.end) {
      return absl::DataLossError(absl::StrCat("etcd at ", store.name(), " was asked for keys from ",
                                              request.key(), " to ", range.end, ", and answered ",
                                              last));
    }
    // The smallest key after the last one of this page.
    request.set_key(last + '\0');
  }
}

}  // namespace hvd::rendezvous::etcd
