// Why a prompt was not enhanced. Nothing is drawn then: half an answer is none.
#pragma once

#include <string>

#include "base/error.h"

namespace braid::net {

class EnhancerFailure : public Error {
 public:
  enum class Kind {
    kGone,      // no answer came: no listener, a cut connection, a certificate that is not trusted
    kLate,      // the deadline passed
    kBusy,      // the server answered that it cannot do it now: 429, 5xx
    kRefused,   // the server answered that it will not do it
    kNonsense,  // what it answered is no prompt
  };
  EnhancerFailure(Kind kind, const std::string& why)
      : Error("the prompt was not enhanced: " + why), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace braid::net
