/* The collectives of an MPI library, for tools/bench/collectives.py: mpirun -np N mpi_worker SOCKET
 * NAME */
#include <mpi.h>
#include <stdint.h>

#include "referee_client.h"

static int rank, size;
static char *in, *out;
static int count; /* floats in the larger buffer */

static int AllReduce(void* unused) {
  return MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int AllGather(void* unused) {
  return MPI_Allgather(in, count / size, MPI_FLOAT, out, count / size, MPI_FLOAT, MPI_COMM_WORLD);
}

static int Broadcast(void* unused) { return MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }

static int AllToAll(void* unused) {
  return MPI_Alltoall(in, count / size, MPI_FLOAT, out, count / size, MPI_FLOAT, MPI_COMM_WORLD);
}

static int ReduceScatter(void* unused) {
  return MPI_Reduce_scatter_block(in, out, count / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* A message from rank 0 to rank 1, and one back. */
static int ThereAndBack(void* unused) {
  const int peer = 1 - rank;
  if (rank > 1) return MPI_SUCCESS;
  if (rank == 0) MPI_Send(out, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
  MPI_Recv(out, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(out, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
  return MPI_SUCCESS;
}

static const struct {
  const char* name;
  int (*call)(void*);
} kOperations[] = {
    {"allreduce", AllReduce},         {"allgather", AllGather},         {"broadcast", Broadcast},
    {"alltoall", AllToAll},           {"reducescatter", ReduceScatter}, {"gather-into", AllGather},
    {"there-and-back", ThereAndBack},
};

static double Now(void) { return MPI_Wtime(); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int fd = argc == 3 ? ConnectToReferee(argv[1], argv[2], rank) : -1;
  if (fd < 0) MPI_Abort(MPI_COMM_WORLD, 2);
  struct Case next;
  size_t bytes = 0;
  while (NextCase(fd, &next)) {
    int (*call)(void*) = NULL;
    for (size_t i = 0; i < sizeof(kOperations) / sizeof(kOperations[0]); ++i) {
      if (strcmp(next.operation, kOperations[i].name) == 0) call = kOperations[i].call;
    }
    if (call == NULL || strcmp(next.type, "float32") != 0) {
      dprintf(fd, "no such operation or type\n");
      continue;
    }
    if (bytes != next.bytes) {
      bytes = next.bytes;
      count = (int)(bytes / sizeof(float));
      free(in);
      free(out);
      in = (char*)malloc(bytes);
      out = (char*)malloc(bytes);
      memset(in, 0, bytes);
      memset(out, 0, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    dprintf(fd, "%.9g\n", TimeCalls(&next, Now, call, NULL));
  }
  MPI_Finalize();
  return 0;
}
