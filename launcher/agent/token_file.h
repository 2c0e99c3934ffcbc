// The credentials of a job, as its daemon has written them into a file.
#ifndef LAUNCHER_AGENT_TOKEN_FILE_H_
#define LAUNCHER_AGENT_TOKEN_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/agent.pb.h"

namespace hvd {

// Reads a message hvd.pb.Credentials in Protobuf's text format.
//   InvalidArgument: it can't be read, is open to others (its group may read it), or holds
//   something else; one line that names the file.
absl::StatusOr<pb::Credentials> ReadTokenFile(const std::string& path);

}  // namespace hvd

#endif  // LAUNCHER_AGENT_TOKEN_FILE_H_
