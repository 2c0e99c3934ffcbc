// The number of the newest layout of archives (archive.h), which snapshots are kept with.
#ifndef RENDEZVOUS_MEMBERSHIP_ARCHIVE_LAYOUT_H_
#define RENDEZVOUS_MEMBERSHIP_ARCHIVE_LAYOUT_H_

#include <cstdint>

namespace hvd::rendezvous::membership {

// Raise it by one when something is added to what is kept.
inline constexpr uint32_t kArchiveLayout = 3;

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_ARCHIVE_LAYOUT_H_
