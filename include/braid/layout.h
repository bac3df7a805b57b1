// How the work on a picture is shared among devices or threads.
#pragma once

namespace braid {

// What the ranks of a layout are: threads of this process, or the processes that mpirun, torchrun
// or srun started, of which this one is a rank (threads where nobody did).
enum class Ranks { kThreads, kProcesses };

// Whether tensor parallel ranks share the adaLN layers of a transformer, too: each then computes a
// run of their outputs, which are gathered.
enum class SharedModulation { kYes, kNo };

// Who has the text encoders: the first rank, or the ranks of tensor parallelism between them.
enum class TextRanks { kFirst, kShared };

// Who decodes tiles, or several pictures.
enum class DecodeRanks { kFirst, kAll };

// How keys and values go around a ring.
enum class RingForm {
  kShift,   // point to point: the next block travels while the one at hand is attended
  kGather,  // all at once: fewer, larger messages, all keys and values in memory
};

// How one picture is shared among ranks. The product of the degrees is the number of ranks.
struct Layout {
  int tp = 1;           // tensor parallel: weights are shared
  int ring = 1;         // context parallel: keys and values are passed around
  int ulysses = 1;      // context parallel: tokens are traded for heads
  int cfg = 1;          // the branches of true guidance
  int dp = 1;           // pictures are shared out
  int layer_split = 1;  // runs of blocks; pictures follow each other through them
  SharedModulation modulation = SharedModulation::kYes;
  TextRanks text = TextRanks::kFirst;
  DecodeRanks decode = DecodeRanks::kAll;
  RingForm ring_form = RingForm::kShift;
  double deadline = 10;  // seconds a rank waits for the others before all give up
  Ranks ranks = Ranks::kThreads;
};

}  // namespace braid
