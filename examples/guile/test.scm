;;; test.scm - what Guile's manual promises of (ice-9 popen), of (wean popen).  Run by
;;; t/guile.sh, in a directory for scratch.

(use-modules (wean popen) (ice-9 binary-ports) (ice-9 format) (ice-9 ftw) (ice-9 match)
             (ice-9 rdelim) (ice-9 receive) (ice-9 textual-ports) (ice-9 threads)
             (rnrs bytevectors) (srfi srfi-1) (srfi srfi-64))

(define kid (getenv "WEAN_KID"))

(define (open-kid mode . words)
  (apply open-pipe* mode kid words))

(define (status-of . words)
  (close-pipe (apply open-kid OPEN_READ words)))

(define-syntax-rule (errno-of body ...)
  (catch 'system-error
    (lambda () body ... 'no-error)
    (lambda error (system-error-errno error))))

(define-syntax-rule (key-of body ...)
  (catch #t
    (lambda () body ... 'no-error)
    (lambda (key . _) key)))

;;; ---- what this process has ----

(define (descriptors)
  (length (scandir "/proc/self/fd")))

(define (children)
  (append-map (lambda (task)
                (string-tokenize
                 (call-with-input-file (format #f "/proc/self/task/~a/children" task)
                   get-string-all)))
              (scandir "/proc/self/task" string->number)))

(define (state pid)
  (catch 'system-error
    (lambda ()
      (let ((line (call-with-input-file (format #f "/proc/~a/stat" pid) read-line)))
        (string-ref line (+ 2 (string-rindex line #\))))))
    (const 'none)))

;;; Collects, and starts something else, until it is so; a while, else.
(define (collected? so?)
  (let loop ((left 200))
    (gc)
    (usleep 10000)
    (status-of "exit" "0")
    (or (so?) (and (positive? left) (loop (- left 1))))))

;;; The collector is conservative: a few of many may seem to be in use.
(define many 40)
(define few 8)

(define (forget! mode . words)
  (map (lambda (_) (hashq-ref port/pid-table (apply open-kid mode words))) (iota many)))

(define (running? pid)
  (not (memv (state pid) '(none #\Z))))

(define (reaped-when-killed? pids)
  (for-each (lambda (pid) (kill pid SIGKILL)) pids)
  (collected? (lambda () (<= (length (children)) few))))

;;; ---- what a child has ----

;;; In a file of its own: "fd N ..." lines as lists.
(define (reported mode)
  (call-with-output-file "report" (const #t))
  (close-pipe (open-kid mode "report" "./report"))
  (filter (lambda (words) (equal? (car words) "fd"))
          (map string-tokenize
               (string-split (string-trim-right
                              (call-with-input-file "report" get-string-all))
                             #\newline))))

(define (numbers lines)
  (map second lines))

;;; What is there behind a number.
(define (link lines number)
  (basename (last (find (lambda (words) (equal? (second words) number)) lines))))

;;; ---- the tests ----

(define runner (test-runner-null))
(test-runner-on-test-end! runner
  (lambda (runner)
    (case (test-result-kind runner)
      ((fail xpass)
       (format #t "FAILED: ~a: ~s, not ~s; ~s~%" (test-runner-test-name runner)
               (test-result-ref runner 'actual-value)
               (test-result-ref runner 'expected-value)
               (test-result-ref runner 'actual-error)))
      ((skip)
       (format #t "skipped: ~a~%" (test-runner-test-name runner))))))
(test-runner-current runner)
(test-begin "(wean popen)")

(test-equal "the module exports what (ice-9 popen) does"
  (sort (module-map (lambda (name _) (symbol->string name))
                    (resolve-interface '(ice-9 popen))) string<?)
  (sort (module-map (lambda (name _) (symbol->string name))
                    (resolve-interface '(wean popen))) string<?))

;;; Ports and modes.

(test-equal "an input pipe is read to its end"
  '("one two\n" 0)
  (let* ((port (open-kid OPEN_READ "echo" "one" "two"))
         (text (get-string-all port)))
    (list text (close-pipe port))))

(test-equal "arguments arrive as they are"
  "a b  'c' \"$HOME\" \n*\n"
  (get-string-all (open-kid OPEN_READ "echo" "a b " "'c'" "\"$HOME\"" "\n*")))

;;; The child's standard output is TO, which then is the child's alone.
(define (open-output-to to . words)
  (let ((port (parameterize ((current-output-port to))
                (apply open-kid OPEN_WRITE words))))
    (close-port to)
    port))

(test-equal "what is written to an output pipe is on its way at once"
  #\x
  (match (pipe)
    ((from . to)
     (let ((port (open-output-to to "cat")))
       (display "x" port)
       (let ((answer (read-char from)))
         (close-pipe port)
         answer)))))

(test-equal "one port for both ways holds a conversation"
  '("ping 1" "ping 2" 0)
  (let* ((port (open-kid OPEN_BOTH "cat"))
         (ask (lambda (text)
                (display text port)
                (newline port)
                (force-output port)
                (read-line port)))
         (answers (map ask '("ping 1" "ping 2"))))
    (append answers (list (close-pipe port)))))

(test-assert "and passes every byte"
  (let ((port (open-kid OPEN_BOTH "cat"))
        (bytes (u8-list->bytevector (iota 256))))
    (put-bytevector port bytes)
    (force-output port)
    (let ((answer (get-bytevector-n port 256)))
      (close-pipe port)
      (equal? bytes answer))))

(test-equal "each port has the default encoding"
  '(#vu8(0 233) "\u00e9" "UTF-16BE")
  (with-fluids ((%default-port-encoding "UTF-16BE"))
    (match (pipe)
      ((from . to)
       (let ((write (open-output-to to "cat"))
             (both (open-kid OPEN_BOTH "cat")))
         (display "\u00e9" write)
         (display "\u00e9" both)
         (force-output both)
         (close-pipe write)
         (list (get-bytevector-all from)
               (string (read-char both))
               (port-encoding (open-kid OPEN_READ "exit" "0"))))))))

(test-equal "a command goes to the shell, in each mode"
  '(("/bin/sh\n" 5) 6 ("more\n" 0))
  (list (let* ((port (open-input-pipe "echo $0; exit 5"))
               (text (get-string-all port)))
          (list text (status:exit-val (close-pipe port))))
        (let ((port (open-output-pipe "read n; exit $n")))
          (display "6\n" port)
          (status:exit-val (close-pipe port)))
        (let ((port (open-input-output-pipe "read word; echo $word")))
          (display "more\n" port)
          (force-output port)
          (let ((text (get-string-all port)))
            (list text (close-pipe port))))))

(test-equal "another mode is refused, as is what is no string"
  '(out-of-range wrong-type-arg wrong-type-arg wrong-type-arg)
  (list (key-of (open-kid "rw" "exit" "0"))
        (key-of (open-pipe* OPEN_READ kid 3))
        (key-of (open-input-pipe 3))
        (key-of (pipeline '(())))))

(test-equal "a word with a zero byte is refused"
  '(misc-error misc-error misc-error)
  (let ((word (string #\: #\nul #\:)))
    (list (key-of (open-kid "r" word))
          (key-of (open-input-pipe word))
          (key-of (pipeline `((,kid ,word)))))))

;;; What the child has.

(test-equal "a child has three descriptors, whatever is open here"
  '(("0" "1" "2") ("0" "1" "2") ("0" "1" "2"))
  (let* ((file (open-file "open" "w"))
         (low (dup->fdes file))
         (high (dup->fdes file 50))
         (lines (map (compose numbers reported) (list OPEN_READ OPEN_WRITE OPEN_BOTH))))
    (close-fdes low)
    (close-fdes high)
    (close-port file)
    lines))

(test-equal "it inherits the current ports that are no pipes"
  '(("in" "err") ("out" "err") "err")
  (let* ((in (open-file "in" "w+"))
         (out (open-file "out" "w"))
         (err (open-file "err" "w"))
         (report (lambda (mode)
                   (parameterize ((current-input-port in) (current-output-port out)
                                  (current-error-port err))
                     (reported mode))))
         (read (report OPEN_READ))
         (write (report OPEN_WRITE)))
    (list (list (link read "0") (link read "2"))
          (list (link write "1") (link write "2"))
          (link (report OPEN_BOTH) "2"))))

(test-equal "one port may stand for several"
  '("same" "same" "same")
  (let* ((same (open-file "same" "w+"))
         (lines (lambda (mode)
                  (parameterize ((current-input-port same) (current-output-port same)
                                 (current-error-port same))
                    (reported mode))))
         (read (lines OPEN_READ)))
    (list (link read "0") (link read "2") (link (lines OPEN_WRITE) "1"))))

(test-equal "1 and 2 may be crossed"
  (map (lambda (number)
         (basename (readlink (format #f "/proc/self/fd/~a" number))))
       '(2 1))
  (let ((lines (parameterize ((current-output-port (current-error-port))
                              (current-error-port (current-output-port)))
                 (reported OPEN_WRITE))))
    (list (link lines "1") (link lines "2"))))

(test-equal "a current port that is no file is /dev/null"
  '("null" "null" "null")
  (let* ((lines (lambda (mode)
                  (parameterize ((current-input-port (open-input-string ""))
                                 (current-output-port (open-output-string))
                                 (current-error-port (open-output-string)))
                    (reported mode))))
         (write (lines OPEN_WRITE)))
    (list (link (lines OPEN_READ) "0") (link write "1") (link write "2"))))

(test-equal "the end of one pipe is not held up by another's child"
  '(0 0)
  (let* ((one (open-kid OPEN_WRITE "exit-on-eof"))
         (two (open-kid OPEN_WRITE "exit-on-eof"))
         (first (close-pipe one)))
    (list first (close-pipe two))))

;;; Statuses.

(test-equal "the status is that of waitpid"
  (list 0 3 SIGTERM 127)
  (list (status:exit-val (status-of "exit" "0"))
        (status:exit-val (status-of "exit" "3"))
        (status:term-sig (status-of "kill" (number->string SIGTERM)))
        (status:exit-val (close-pipe (open-input-pipe "./missing 2>/dev/null")))))

;;; It runs on for a while when its pipe was closed.
(define (open-patient)
  (open-kid OPEN_WRITE "cat" "--then" "sleep" "30" "--then" "exit" "7"))

(test-equal "a child that runs on is waited for"
  7
  (status:exit-val (close-pipe (open-patient))))

(test-equal "a pipe is closed once, and nothing else is"
  '(misc-error misc-error misc-error)
  (let ((port (open-kid OPEN_READ "exit" "0")))
    (close-pipe port)
    (list (key-of (close-pipe port))
          (key-of (close-pipe (current-output-port)))
          (key-of (close-pipe 3)))))

(test-equal "a port that was closed can still be waited for"
  3
  (let ((port (open-kid OPEN_READ "exit" "3")))
    (close-port port)
    (status:exit-val (close-pipe port))))

;;; Since Linux 6.15 the kernel still tells.
(test-assert "a child that another has waited for is no hang, and never a success"
  (let ((port (open-kid OPEN_READ "exit" "3")))
    (waitpid (hashq-ref port/pid-table port))
    (memv (catch 'system-error
            (lambda () (close-pipe port))
            (lambda error (system-error-errno error)))
          (list ECHILD (ash 3 8)))))

(test-equal "the table of pids has the pipes that are open"
  '(#t #f)
  (let* ((port (open-kid OPEN_READ "pause"))
         (pid (hashq-ref port/pid-table port)))
    (kill pid SIGKILL)
    (list (= (status:term-sig (close-pipe port)) SIGKILL)
          (hashq-ref port/pid-table port))))

;;; Errors.

(test-equal "a program that cannot be started is an error at once"
  (list ENOENT ENOENT EACCES ENOENT)
  (list (errno-of (open-pipe* OPEN_READ "./missing"))
        (errno-of (open-pipe* OPEN_BOTH "wean-has-no-such-program"))
        (errno-of (open-pipe* OPEN_WRITE "./"))
        (errno-of (pipeline `((,kid "cat") ("./missing") (,kid "cat"))))))

(test-equal "which says what is wrong"
  "cannot run './missing': No such file or directory"
  (catch 'system-error
    (lambda () (open-pipe* OPEN_READ "./missing"))
    (lambda (key subr format arguments . _) (apply simple-format #f format arguments))))

(test-assert "and leaves neither a child nor a descriptor"
  (begin
    (collected? (const #t))
    (let ((before (descriptors)) (children-before (length (children))))
      (for-each (lambda (_)
                  (errno-of (open-pipe* OPEN_BOTH "./missing"))
                  (errno-of (pipeline `((,kid "cat") ("./missing")))))
                (iota 20))
      (and (<= (descriptors) before)
           (<= (length (children)) children-before)))))

(test-equal "no descriptor left is an error"
  EMFILE
  (receive (soft hard) (getrlimit 'nofile)
    (setrlimit 'nofile 3 hard)
    (let ((errno (errno-of (open-kid OPEN_READ "exit" "0"))))
      (setrlimit 'nofile soft hard)
      errno)))

;;; Signals.

(sigaction SIGPIPE SIG_IGN)

(test-equal "a write to a child that is over is EPIPE, and its status is there"
  (list EPIPE 4)
  (let* ((port (open-kid OPEN_WRITE "exit" "4"))
         (errno (errno-of (let loop () (display "x" port) (usleep 1000) (loop)))))
    (list errno (status:exit-val (close-pipe port)))))

(test-equal "a child gets SIGPIPE, also where it is ignored here"
  SIGPIPE
  (let ((port (open-kid OPEN_READ "lines" "1" "100000000")))
    (read-line port)
    (status:term-sig (close-pipe port))))

(sigaction SIGPIPE SIG_DFL)

(sigaction SIGALRM (lambda _ (throw 'alarm)))

(test-assert "a handler runs while close-pipe waits, and may leave it"
  (let* ((ports (map (lambda (_) (open-kid OPEN_READ "pause")) (iota many)))
         (pids (map (lambda (port) (hashq-ref port/pid-table port)) ports)))
    (and (every (lambda (port)
                  (eq? (key-of (setitimer ITIMER_REAL 0 0 0 2000) (close-pipe port))
                       'alarm))
                ports)
         (every running? pids)
         (reaped-when-killed? pids))))

;;; Threads.

(define (talk-and-leave n)
  (let ((port (open-kid OPEN_BOTH "cat")))
    (write n port)
    (newline port)
    (force-output port)
    (let ((answer (read port)))
      (close-pipe port)
      (and (= answer n)
           (= (status:exit-val (status-of "exit" (number->string n))) n)))))

(test-equal "threads do not meet each other's children"
  (make-list 8 #t)
  (map join-thread
       (map (lambda (n)
              (call-with-new-thread
               (lambda () (every talk-and-leave (make-list 20 n)))))
            (iota 8))))

;;; Of fcntl(2): who has a lease is told before another opens the file, who then waits.
(define set-lease 1024)
(define get-lease 1025)
(define write-lease 1)
(define no-lease 2)

(copy-file kid "slow")
(chmod "slow" #o755)
(sigaction SIGIO SIG_IGN)

(let ((file (open-file "slow" "r")))
  (unless (eq? (errno-of (fcntl file set-lease write-lease)) 'no-error)
    (test-skip 1))
  (test-assert "a start that waits for a file server holds up no collection"
    (let ((thread (call-with-new-thread
                   (lambda () (close-pipe (open-pipe* OPEN_READ "./slow" "exit" "5"))))))
      (while (= (fcntl file get-lease 0) write-lease)
        (usleep 1000))
      (gc)
      (let ((waits? (not (thread-exited? thread))))
        (fcntl file set-lease no-lease)
        (and waits? (= (status:exit-val (join-thread thread)) 5))))))

;;; The collector.

(receive (soft hard) (getrlimit 'nofile)
  (when (and soft (< soft 500))
    (test-skip 1)))

(test-assert "what is forgotten is closed and reaped"
  (let ((before (descriptors)))
    (forget! OPEN_READ "exit" "0")
    (forget! OPEN_WRITE "exit-on-eof")
    (forget! OPEN_BOTH "cat")
    (collected? (lambda ()
                  (and (<= (descriptors) (+ before (* 2 few)))
                       (<= (length (children)) few))))))

(test-assert "a child whose port was only closed is reaped"
  (begin
    (for-each (lambda (_) (close-port (open-kid OPEN_WRITE "exit-on-eof"))) (iota many))
    (collected? (lambda () (<= (length (children)) few)))))

(test-assert "one that runs on is neither waited for nor killed, and is reaped in the end"
  (let* ((before (descriptors))
         (pids (forget! OPEN_READ "pause"))
         ;; Each child still has the descriptor that tells of its end.
         (left? (lambda (n) (<= (descriptors) (+ before n (* 2 few))))))
    (and (collected? (lambda () (left? many)))
         (every running? pids)
         (reaped-when-killed? pids)
         (left? 0))))

;;; Many descriptors.

(receive (soft hard) (getrlimit 'nofile)
  (define most (if hard (min hard 20000) 20000))
  (when (< most 2000)
    (test-skip 1))
  (test-equal "a child is waited for by any number, and in a thread of any numbers"
    '(7 7)
    (begin
      (setrlimit 'nofile most hard)
      (let* ((file (open-file "open" "w"))
             (taken (map (lambda (_) (dup->fdes file))
                         (iota (- most (descriptors) 20))))
             (status (close-pipe (open-patient)))
             (another (join-thread (call-with-new-thread
                                    (lambda () (close-pipe (open-patient)))))))
        (for-each close-fdes taken)
        (setrlimit 'nofile soft hard)
        (map status:exit-val (list status another))))))

;;; Takes what is left: numbers.
(define (take-all file)
  (let loop ((taken '()))
    (match (catch 'system-error (lambda () (dup->fdes file)) (const #f))
      (#f taken)
      (number (loop (cons number taken))))))

(test-equal "or looked for, where none is left to tell of its end"
  '(1 7)
  (receive (soft hard) (getrlimit 'nofile)
    (setrlimit 'nofile 100 hard)
    (let* ((file (open-file "open" "w"))
           (taken (take-all file)))
      (for-each close-fdes (take taken 2))
      (let* ((port (open-patient))
             (left (take-all file))
             (status (close-pipe port)))
        (for-each close-fdes (append left (drop taken 2)))
        (setrlimit 'nofile soft hard)
        (list (length left) (status:exit-val status))))))

;;; Pipelines.

(test-equal "a pipeline is fed and read as a whole"
  '("one\ntwo\n" (0 0 0))
  (receive (from to pids) (pipeline `((,kid "cat") (,kid "cat") (,kid "cat")))
    (display "one\ntwo\n" to)
    (close-port to)
    (let ((text (get-string-all from)))
      (close-port from)
      (list text (map (compose status:exit-val cdr waitpid) pids)))))

(test-equal "its pids are the caller's, the last one's first"
  '(5 4 3)
  (receive (from to pids)
      (pipeline `((,kid "exit" "3") (,kid "exit" "4") (,kid "exit" "5")))
    (close-port from)
    (close-port to)
    (map (compose status:exit-val cdr waitpid) pids)))

(test-equal "one of no commands is a pipe"
  '(#\x ())
  (receive (from to pids) (pipeline '())
    (display "x" to)
    (force-output to)
    (list (read-char from) pids)))

(test-end)
(format #t "~a passed, ~a failed, ~a skipped~%" (test-runner-pass-count runner)
        (test-runner-fail-count runner) (test-runner-skip-count runner))
(exit (and (positive? (test-runner-pass-count runner))
           (zero? (test-runner-fail-count runner))))
