#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

/// Root of every exception the library throws. Messages read
/// `[op] what is wrong: expected ..., got .... What to do.`
/// The library never prints and never exits; callers tell errors apart by type.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}

  const char* what() const noexcept override {
    return with_notes_.empty() ? std::runtime_error::what() : with_notes_.c_str();
  }
  /// Adds a line to the message, for code that rethrows the exception and can add where it came
  /// from.
  void add_note(const std::string& note) { with_notes_ = what() + ("\n" + note); }

  /// Class name as users know it ("ShapeError"), for reports.
  virtual const char* kind() const noexcept { return "Error"; }

 private:
  std::string with_notes_;
};

#define LS_ERROR_CLASS(Name, Base)                               \
  class Name : public Base {                                     \
   public:                                                       \
    using Base::Base;                                            \
    const char* kind() const noexcept override { return #Name; } \
  }

LS_ERROR_CLASS(ShapeError, Error);        ///< sizes, strides or dimensions do not fit
LS_ERROR_CLASS(DTypeError, Error);        ///< an element type is not accepted
LS_ERROR_CLASS(DeviceError, Error);       ///< wrong, missing or failing device
LS_ERROR_CLASS(OutOfMemoryError, Error);  ///< the allocator stays usable
LS_ERROR_CLASS(IndexError, Error);        ///< an index or a target lies outside its range
LS_ERROR_CLASS(DispatchError,
               Error);  ///< unknown operator, missing kernel, arguments against the schema
LS_ERROR_CLASS(AutogradError, Error);  ///< a graph that cannot be recorded or run
LS_ERROR_CLASS(DistError, Error);      ///< communication between ranks
LS_ERROR_CLASS(BackendError, DistError);
LS_ERROR_CLASS(TimeoutError, DistError);
LS_ERROR_CLASS(PeerLostError, DistError);
LS_ERROR_CLASS(MismatchError, DistError);
LS_ERROR_CLASS(ConfigError, Error);  ///< message starts with file:line:column where one is known
LS_ERROR_CLASS(DataError, Error);    ///< a data file is missing, unreadable or malformed
LS_ERROR_CLASS(CheckpointError, Error);
LS_ERROR_CLASS(NonFiniteError, Error);  ///< a loss or gradient is NaN or infinite
LS_ERROR_CLASS(InternalError, Error);   ///< a bug in Lockstep, never the caller's fault

#undef LS_ERROR_CLASS

}  // namespace lockstep
