// How work on pictures is divided among devices or threads.
#pragma once

#include <vector>

#include "braid/fit.h"

namespace braid {

// What ranks are: threads of this process, or the processes started by mpirun, torchrun or srun, of
// which this is one. Without a launcher they are threads.
enum class Ranks { kThreads, kProcesses };

// Whether tensor parallel ranks also split a transformer's adaLN layers: each then computes a run
// of the outputs, which are gathered.
enum class SharedModulation { kYes, kNo };

// Who runs the text encoders: the first rank, or its tensor parallel ranks together.
enum class TextRanks { kFirst, kShared };

// Who decodes, when there are tiles or several pictures.
enum class DecodeRanks { kFirst, kAll };

// How keys and values travel around a ring.
enum class RingForm {
  kShift,   // point to point: the next block travels while the current one is attended to
  kGather,  // all at once: fewer, larger messages; all keys and values in memory
};

// Who sums over ranks whose GPUs are linked by NCCL or RCCL.
enum class Collectives {
  kOrdered,  // Braid: in rank order, rounded once; the same bits over every transport
  kNative,   // the library: in an order and with roundings of its own. Needs such a link
};

// The proportions in which ranks along an axis take what they share, a number of 1 to 1000 for
// each: {3, 2} gives the first of two ranks three fifths. Empty: all take alike. What cannot be cut
// (a head, a token, a block, a picture) goes to the rank whose proportion lost most by rounding.
struct AxisShares {
  std::vector<int> dp = {};       // pictures of a batch
  std::vector<int> pp = {};       // blocks
  std::vector<int> ring = {};     // tokens
  std::vector<int> ulysses = {};  // tokens, and heads in attention
  std::vector<int> tp = {};       // heads, and the MLP's channels in proportion to them
  bool operator==(const AxisShares&) const = default;
};

// How pictures are divided among ranks. The number of ranks is the product of the degrees.
struct Layout {
  // kAuto: the degrees, which then stay 1 here, become those that `braid plan` ranks first for one
  // rank per device.
  Fit fit = Fit::kAsAsked;
  int tp = 1;       // tensor parallel: splits the weights
  int ring = 1;     // context parallel: passes keys and values around
  int ulysses = 1;  // context parallel: trades tokens for heads
  int cfg = 1;      // splits the branches of true guidance
  int dp = 1;       // splits the pictures
  int pp = 1;       // pipeline parallel: runs of blocks; pictures follow each other through them
  int layer_split = 1;     // the name that `pp` had before 0.3; it goes with 0.4
  AxisShares shares = {};  // of devices that are not alike
  // kAuto: `shares`, which then stay empty here, become proportional to what each rank's device was
  // measured to reach, in eighths of the fastest.
  Fit shares_fit = Fit::kAsAsked;
  SharedModulation modulation = SharedModulation::kYes;
  TextRanks text = TextRanks::kFirst;
  DecodeRanks decode = DecodeRanks::kAll;
  RingForm ring_form = RingForm::kShift;
  Collectives collectives = Collectives::kOrdered;
  // Seconds a rank waits for the others before all ranks give up; 0: 10, or 60 where one has a GPU.
  double deadline = 0;
  Ranks ranks = Ranks::kThreads;
};

}  // namespace braid
