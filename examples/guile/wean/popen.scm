;;; popen.scm - (wean popen) has the interface of (ice-9 popen), whose chapter "Pipes" in
;;; Guile's manual holds for it.
;;;
;;;    (use-modules (wean popen) (ice-9 rdelim))
;;;    (let* ((port (open-pipe* OPEN_READ "uname" "-s"))
;;;           (line (read-line port)))
;;;      (close-pipe port)
;;;      line)
;;;    => "Linux"
;;;
;;; What differs: a program that cannot be started is a system-error at once, with a
;;; sentence, and no child that leaves with 127.  An input pipe is read by blocks and not
;;; by bytes.  A handler runs while close-pipe waits.  The collector closes what nobody
;;; uses any more, as the manual says.

(define-module (wean popen)
  #:use-module (ice-9 atomic)
  #:use-module (ice-9 binary-ports)
  #:export (port/pid-table open-pipe open-pipe* open-input-pipe open-output-pipe
            open-input-output-pipe close-pipe pipeline))

(eval-when (expand load eval)
  (load-extension "guile-wean" "init_guile_wean"))

;;; The ports close themselves when they are collected.  Their children then come out of
;;; the guardian: one that is over is reaped, one that is not goes back, and is looked at
;;; after the next collection.  Nothing waits here, and nothing is killed.
(define guardian (make-guardian))

;;; Port -> atomic box -> child: of several threads that close a pipe, one gets it.
(define pipes (make-weak-key-hash-table))

;;; Port -> pid, as long as the child is not waited for.
(define port/pid-table (make-weak-key-hash-table))

(define (reap)
  (let ((child (guardian)))
    (when child
      (unless (child-over? child)
        (guardian child))
      (reap))))

;;; A weak table lets go of a value when it is used, not when the key is collected.
(define (tidy)
  (hashq-ref pipes #f)
  (reap))

;;; And at each start: the hook waits for the thread that collected, and where that is the
;;; one of the finalizers it waits long.
(add-hook! after-gc-hook tidy)

;;; Guarded before the start: whatever a handler throws, it is not lost.
(define (new-child)
  (let ((child (make-child)))
    (guardian child)
    child))

;;; One port of two.  Binary, so that the encoding is left to the one outside.
(define (join from to)
  (define (read! bytes start count)
    (let ((n (get-bytevector-some! from bytes start count)))
      (if (eof-object? n) 0 n)))
  (define (write! bytes start count)
    (put-bytevector to bytes start count)
    count)
  (define (close)
    (close-port to)
    (close-port from))
  (let ((port (make-custom-binary-input/output-port "pipe" read! write! #f #f close)))
    (set-port-encoding! port (port-encoding from))
    (set-port-conversion-strategy! port (port-conversion-strategy from))
    (set-port-encoding! from "ISO-8859-1")
    (set-port-encoding! to "ISO-8859-1")
    port))

(define (open-pipe* mode program . arguments)
  "Starts PROGRAM with ARGUMENTS, strings all of them, and gives a port to it.  MODE is
OPEN_READ, to read what it writes, OPEN_WRITE, to write what it reads, or OPEN_BOTH."
  (let ((reads? (member mode (list OPEN_READ OPEN_BOTH)))
        (writes? (member mode (list OPEN_WRITE OPEN_BOTH))))
    (unless (or reads? writes?)
      (scm-error 'out-of-range "open-pipe*" "Not a mode: ~S" (list mode) (list mode)))
    (tidy)
    (let* ((child (new-child))
           (ends (start-child! child (cons program arguments) reads? writes?))
           (from (car ends))
           (to (cdr ends))
           (port (if (and from to) (join from to) (or from to))))
      (hashq-set! pipes port (make-atomic-box child))
      (hashq-set! port/pid-table port (child-pid child))
      port)))

(define (open-pipe command mode)
  "As open-pipe*, of a COMMAND for the shell."
  (open-pipe* mode "/bin/sh" "-c" command))

(define (open-input-pipe command)
  "A port to read what the shell's COMMAND writes."
  (open-pipe command OPEN_READ))

(define (open-output-pipe command)
  "A port to write what the shell's COMMAND reads."
  (open-pipe command OPEN_WRITE))

(define (open-input-output-pipe command)
  "A port to write what the shell's COMMAND reads, and to read what it writes."
  (open-pipe command OPEN_BOTH))

(define (close-pipe port)
  "Closes PORT, waits for its program and gives the status, as of waitpid."
  (let* ((box (hashq-ref pipes port))
         (child (and box (atomic-box-swap! box #f))))
    (unless child
      (error "close-pipe: not a pipe, or closed before:" port))
    (hashq-remove! port/pid-table port)
    (close-port port)
    (end-child! child)))

(define (pipeline commands)
  "Starts COMMANDS, each a list of a program and its arguments, each reading what the one
before it writes.  Gives a port to read from the last, one to write to the first, and the
pids, the last one's first, for waitpid."
  (if (null? commands)
      (let ((ends (pipe)))
        (values (car ends) (cdr ends) '()))
      (let ((started (start-pipeline commands)))
        (values (car started) (cadr started) (cddr started)))))
