/* A program that only starts: init, a line to a file of each rank's, the end. For
 * tools/bench/start.py: mpirun -np N mpi_start DIRECTORY */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char path[4096];
  snprintf(path, sizeof(path), "%s/%d", argc > 1 ? argv[1] : ".", rank);
  FILE* file = fopen(path, "w");
  if (file == NULL) return 2;
  fprintf(file, "{\"ready\": %.6f}\n", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
  fclose(file);
  MPI_Finalize();
  return 0;
}
