#include "pipeline/graphs/graph_pool.h"

#include <exception>

namespace braid {

void give_back(GraphPool& pool) noexcept {
  try {
    pool.stop();
  } catch (const std::exception&) {
    // the recording has ended
  }
  try {
    while (pool.num_holders() > 0) pool.release();
  } catch (const std::exception&) {
    // nothing was recorded
  }
}

}  // namespace braid
