// How long one evaluation of a transformer takes under a layout.
#pragma once

#include "comm/axis_traffic.h"
#include "pipeline/graphs/step_graph.h"
#include "pipeline/memory/peaks.h"
#include "pipeline/proofs/probe.h"

namespace braid {

struct BenchOptions {
  ProbeOptions probe = {};
  int runs = 5, warm_ups = 1;  // one warm-up more if graphs are recorded and warm-ups are on
};

// The evaluations of one denoiser.
struct TimedDenoiser {
  std::string folder;  // its part's
  // Of each timed run, from the moment all ranks begin until all are done: the slowest rank's time,
  // on a GPU by its own clock.
  std::vector<double> seconds;

  double median_seconds() const;
};

struct BenchResult {
  std::vector<TimedDenoiser> denoisers;
  // The first rank's, before the first step: not part of the runs. Blocks that see only the text
  // refine it; keeping a prefix counts as that.
  double modulations_seconds, refining_seconds;
  double load_seconds;
  double warm_up_seconds;  // of all evaluations before the timed ones
  TrafficByAxis traffic;   // of one run of the first: what the first rank sent to the others
  std::int64_t tokens;     // image, text and reference tokens
  int width, height;       // pixels
  at::ScalarType dtype;
  int num_ranks, threads;  // CPU threads of each rank
  GraphUse graph = {};
  TextStream text_stream = TextStream::kShared;  // as it was, whatever was asked for
  std::vector<RankPeaks> peaks = {};  // while loading, and (as denoising) in all evaluations

  const TimedDenoiser& slowest() const;
};

// On every rank, evaluating as a Pipeline does, one denoiser after another. Throws InputError as it
// does.
BenchResult bench(Deployment deployment, const BenchOptions& options = {});

}  // namespace braid
