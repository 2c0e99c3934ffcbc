#include "rendezvous/store/record_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "rendezvous/journal/record_file.h"

namespace hvd::rendezvous::store {

absl::StatusOr<std::string> ReadFile(const os::PrivateFolder& folder, const std::string& name) {
  ASSIGN_OR_RETURN(const Fd file, folder.OpenFile(name, O_RDONLY));
  std::string contents;
  char buffer[4096];
  while (true) {
    // Not ReadSome, to which a bad disk is the end of the file: the record would seem damaged.
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got == 0) return contents;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::DataLossError(
          absl::StrCat(folder.PathOf(name), " can't be read: ", strerror(errno)));
    }
    contents.append(buffer, static_cast<size_t>(got));
  }
}

absl::Status ReplaceRecord(const os::PrivateFolder& folder, const std::string& name,
                           absl::string_view payload) {
  const std::string draft = absl::StrCat(name, ".new");
  ASSIGN_OR_RETURN(const Fd file, folder.NewFile(draft));
  // Written beside the old file and synced before the rename, so that after a crash the name has
  // the old record or the new one. The sync of the folder makes the rename itself durable.
  if (!WriteAll(file.get(), journal::EncodeRecord(payload)).ok() || fsync(file.get()) != 0) {
    return absl::InternalError(
        absl::StrCat("can't write ", folder.PathOf(name), ": ", strerror(errno)));
  }
  RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.identity.written"));
  RETURN_IF_ERROR(folder.Rename(draft, name));
  RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.identity.renamed"));
  return folder.Sync();
}

}  // namespace hvd::rendezvous::store
