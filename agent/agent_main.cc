// horovod-agent: started by horovodrun, once per host.
#include "agent/agent_program.h"
#include "base/mutex_checks.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/security/protobuf_log.h"

int main(int argc, char** argv) {
  hvd::SwitchOffMutexChecks();
  hvd::rendezvous::security::SilenceProtobuf();
  return hvd::agent::RunAgentProgram(argc, argv, &hvd::rendezvous::client::AgentLink::Open);
}
