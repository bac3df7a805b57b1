#include "op_times.h"

#include <chrono>
#include <utility>

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

// LibTorch's callbacks are plain functions.
thread_local std::vector<OpTime> noted;
thread_local int depth = 0;

struct Began : at::ObserverContext {
  Clock::time_point at = Clock::now();
};

std::vector<std::int64_t> sizes_of(const at::RecordFunction& op) {
  std::vector<std::int64_t> sizes;
  if (!std::string_view(op.name()).starts_with("braid::")) return sizes;
  for (const auto& value : op.inputs()) sizes.push_back(value.toInt());
  return sizes;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (depth++ == 0) noted.push_back({op.name(), sizes_of(op), 0});
  return std::make_unique<Began>();
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  if (--depth > 0 || noted.empty()) return;
  const auto began = static_cast<const Began*>(context)->at;
  noted.back().seconds = std::chrono::duration<double>(Clock::now() - began).count();
}

}  // namespace

OpTimes::OpTimes()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}))) {
  noted.clear();
  depth = 0;
}

OpTimes::~OpTimes() { at::removeCallback(handle_); }

std::vector<OpTime> OpTimes::take() { return std::exchange(noted, {}); }

}  // namespace braid
